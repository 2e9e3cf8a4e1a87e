"""`python -m bellief`, for machines where the `bellief` script is not on the path."""

import sys

from bellief.cli import main

if __name__ == "__main__":
    sys.exit(main())
