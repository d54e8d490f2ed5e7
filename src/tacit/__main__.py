"""The command line, as `python -m tacit`."""

from tacit.cli import main

if __name__ == "__main__":
    main()
