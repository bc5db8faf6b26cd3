"""Results for people: `figures` turns arrays into pictures, `page` puts pictures and tables on one HTML page."""

from prodsc.errors import require

for _library in ("matplotlib", "jinja2"):
    require(_library, extra="report", caller="the report")
