"""python -m prodsc"""

from prodsc.cli import main

main()
