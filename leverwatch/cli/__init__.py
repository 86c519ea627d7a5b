"""The commands, one module each: `add(subparsers)` states the arguments, `run(args)` gives the exit status."""
