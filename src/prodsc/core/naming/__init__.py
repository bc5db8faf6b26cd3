"""What clusters are like, in words: typical rows, keywords of texts, columns that set a cluster apart."""

from prodsc.core.naming.columns import are_words, column_shifts, unusual_columns
from prodsc.core.naming.exemplars import likeness, typical_rows
from prodsc.core.naming.keywords import keywords
from prodsc.core.naming.names import names_from_columns, names_from_ids, names_from_keywords, unique_names

__all__ = [
    "are_words",
    "column_shifts",
    "keywords",
    "likeness",
    "names_from_columns",
    "names_from_ids",
    "names_from_keywords",
    "typical_rows",
    "unique_names",
    "unusual_columns",
]
