import gc

from engine.cli.main import main

gc.freeze()  # what was imported is never looked through again
gc.enable()

raise SystemExit(main())
