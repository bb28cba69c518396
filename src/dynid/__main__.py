"""``python -m dynid``."""

from dynid.cli import main

main()
