"""The decorator with which the tests check annotations of prodsc.core and prodsc.nn while they run: see conftest.py."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int is a float, as for every type checker
