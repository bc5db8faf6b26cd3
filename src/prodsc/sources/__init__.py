"""Any input to rows, labels, names of rows and columns: one door (`door.open_source`), formats behind it."""
