"""`loupe`, and `python -m loupe`: the engine's command line, with the server."""

import gc
import os


def main() -> int:
    """Returns the exit status. What engine/__init__.py does for `python -m engine` is done here for the script too."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    gc.disable()
    from engine.cli.main import main as run_command

    gc.freeze()
    gc.enable()
    return run_command()


if __name__ == "__main__":
    raise SystemExit(main())
