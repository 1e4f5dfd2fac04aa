"""`python -m gonio`: the command without its script."""

from gonio.cli import main

if __name__ == "__main__":
    main()
