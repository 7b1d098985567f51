"""`python -m botservice` is the command `botservice`."""

from botservice.core.loading import loading


def main() -> None:
    """Load the command line and run it."""
    with loading():
        from botservice.cli.main import main as run  # a tenth of a second
    run()


if __name__ == "__main__":
    main()
