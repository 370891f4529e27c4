from quintain.cli.main import main

__all__ = ["main"]
