"""The command: taimatsu run, taimatsu collect-env, taimatsu inspect."""
import argparse
import os
import sys


def _run(args):
    """Replace this process by the program, with the alias on its import path (and so on that of its child processes)."""
    from ._alias import alias_environment
    if not args.command:
        print("taimatsu run: which program?", file=sys.stderr)
        return 2
    if args.command[0] not in ("-m", "-c") and not os.path.exists(args.command[0]):
        print(f"taimatsu run: no such file: {args.command[0]}", file=sys.stderr)
        return 2
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *args.command], alias_environment(os.environ))
    return 1


def _collect_env(args):
    """What a bug report should say about this machine."""
    from .utils.collect_env import main
    return main()


def _inspect(args):
    """List what a checkpoint holds, without running anything from it."""
    from ._inspect import show
    return show(args.file)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="taimatsu", description="A deep-learning framework with PyTorch's API.")
    commands = parser.add_subparsers(dest="name", required=True)
    run = commands.add_parser("run", help="run a PyTorch program on Taimatsu: taimatsu run train.py arguments ...")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="script.py | -m module | -c code, arguments")
    run.set_defaults(call=_run)
    env = commands.add_parser("collect-env", help="versions and processor features, for bug reports")
    env.set_defaults(call=_collect_env)
    inspect = commands.add_parser("inspect", help="what a .pt or .safetensors file holds")
    inspect.add_argument("file")
    inspect.set_defaults(call=_inspect)
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv[:1] == ["run"] and argv[1:2] not in (["-h"], ["--help"]):     # what follows is the program's own, options included
        return _run(argparse.Namespace(command=argv[1:]))
    args = parser.parse_args(argv)
    return args.call(args)
