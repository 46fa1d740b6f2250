"""`python -m odejet`: the command line."""

import sys

from odejet.cli import main

if __name__ == "__main__":
    sys.exit(main())
