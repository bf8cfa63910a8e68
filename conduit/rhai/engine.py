"""The engine: what a host registers, compiles and runs.

An engine is set up once and then used from any number of threads. A compiled `Script` belongs to
the engine that compiled it; a run costs a `Scope` and a `RunState`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from conduit.rhai.assigning import ASSIGNING
from conduit.rhai.calls import Code, Program, as_eval_error, line_of, placed
from conduit.rhai.compiler import CompiledScript, compile_tree
from conduit.rhai.errors import (
    EvalError,
    ParseError,
    RhaiError,
    StopScript,
    TerminateScript,
)
from conduit.rhai.limits import Limits, RunState
from conduit.rhai.modules import Module, Resolver
from conduit.rhai.natives import ANY, READ, Library, Native, TypeSpec
from conduit.rhai.nodes import Tree
from conduit.rhai.operators import Operator
from conduit.rhai.packages import STANDARD
from conduit.rhai.parser import parse
from conduit.rhai.scope import Scope
from conduit.rhai.text import display
from conduit.rhai.values import TYPE_NAMES, share

__all__ = ["Engine", "Script"]


class HostType:
    """What a host told about one of its classes."""

    __slots__ = ("name", "to_debug", "to_string")

    def __init__(
        self,
        name: str,
        to_string: Callable[[Any], str] | None,
        to_debug: Callable[[Any], str] | None,
    ) -> None:
        self.name = name
        self.to_string = to_string
        self.to_debug = to_debug


class Script:
    """A compiled script; immutable, to be run from any thread. `tree` is its syntax tree."""

    __slots__ = ("compiled", "engine", "keeping", "source", "text", "tree")

    def __init__(
        self, engine: Engine, text: str, source: str, tree: Tree, compiled: CompiledScript
    ) -> None:
        self.engine = engine
        self.text = text
        self.source = source
        self.tree = tree
        self.compiled = compiled
        self.keeping: CompiledScript | None = None

    @property
    def functions(self) -> list[tuple[str, int]]:
        """Names and numbers of parameters of the functions it defines."""
        return list(self.compiled.program.functions)


def _print(text: str) -> None:
    print(text)


def _debug(text: str, source: str, line: int, column: int) -> None:
    where = f"{source} @ " if source else ""
    print(f"{where}{line}:{column} | {text}")


class Engine:
    """Registers host functions and types, compiles scripts and runs them.

    `on_print(text)` and `on_debug(text, source, line, position)` get what scripts print;
    `on_progress(count)` is asked now and then and ends the run by a value other than None.
    `resolver(path, source)` finds modules for `import`; without one every import fails.
    """

    def __init__(self, limits: Limits | None = None, *, resolver: Resolver | None = None) -> None:
        self.limits = limits or Limits()
        self.on_print: Callable[[str], None] = _print
        self.on_debug: Callable[[str, str, int, int], None] = _debug
        self.on_progress: Callable[[int], Any] | None = None
        self.resolver = resolver
        self.host = Library()
        self.global_values: dict[str, Any] = {}
        self.static_modules: dict[str, Module] = {}
        self.iterators: dict[type, Callable[[Any], Iterable[Any]]] = {}
        self._types: dict[type, HostType] = {}
        self._index_getters: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
        self._index_setters: dict[tuple[type, type, Any], Callable[[Any, Any, Any], None]] = {}
        self._found: dict[tuple[str, tuple[type, ...]], Native | None] = {}
        self._loaded: dict[str, Module] = {}
        self._lock = threading.RLock()

    # Registration

    def register_fn(
        self,
        name: str,
        function: Callable[..., Any],
        *types: TypeSpec,
        pure: bool = True,
        context: bool = False,
        mode: int = READ,
    ) -> None:
        """Makes `function` callable as `name`, for arguments of exactly these types.

        `ANY` stands for every type, a tuple for alternatives. With `context` the function gets the
        `RunState` first. An exception it raises becomes ``ErrorRuntime`` with its text, unless it
        is an EvalError. Functions must return values of the language or of registered types.
        """
        self.host.add(name, types, function, pure=pure, mode=mode, context=context)
        self._found.clear()

    def register_type(
        self,
        python_class: type,
        name: str,
        *,
        methods: Mapping[str, Callable[..., Any]] | None = None,
        getters: Mapping[str, Callable[[Any], Any]] | None = None,
        setters: Mapping[str, Callable[[Any, Any], None]] | None = None,
        index_get: Mapping[type, Callable[[Any, Any], Any]] | None = None,
        index_set: Mapping[tuple[type, Any], Callable[[Any, Any, Any], None]] | None = None,
        to_string: Callable[[Any], str] | None = None,
        to_debug: Callable[[Any], str] | None = None,
        equals: Callable[[Any, Any], bool] | None = None,
        iterate: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        """Makes a Python class a type of the language, known as `name`.

        `methods` take the object alone (use `register_fn` for more arguments); `index_get` goes
        by the type of the index, `index_set` by types of index and value (`ANY` allowed). Copies
        of a value share the object.
        """
        self._types[python_class] = HostType(name, to_string, to_debug)
        for method, function in (methods or {}).items():
            self.register_fn(method, function, python_class)
        for key, getter in (getters or {}).items():
            self.host.getters[(python_class, key)] = getter
        for key, setter in (setters or {}).items():
            self.host.setters[(python_class, key)] = setter
        for kind, reader in (index_get or {}).items():
            self._index_getters[(python_class, kind)] = reader
        for (kind, value_kind), writer in (index_set or {}).items():
            self._index_setters[(python_class, kind, value_kind)] = writer
        if equals is not None:
            self.register_fn("==", equals, python_class, python_class)
        if iterate is not None:
            self.iterators[python_class] = iterate

    def register_constant(self, name: str, value: Any) -> None:
        """A variable that every script can read, in functions too."""
        self.global_values[name] = value

    def register_module(self, name: str, module: Module) -> None:
        """Makes `name::X` available without import."""
        self.static_modules[name] = module

    # What running scripts ask

    def find(self, name: str, types: tuple[type, ...]) -> Native | None:
        """The native function for these argument types."""
        key = (name, types)
        try:
            return self._found[key]
        except KeyError:
            pass
        native = (
            self.host.find_exact(name, types)
            or STANDARD.find_exact(name, types)
            or self.host.find_wild(name, types)
            or STANDARD.find_wild(name, types)
        )
        if len(self._found) > 10000:
            self._found.clear()
        self._found[key] = native
        return native

    def natives_named(self, name: str) -> list[Native]:
        """All native functions of that name."""
        return self.host.names.get(name, []) + STANDARD.names.get(name, [])

    def type_name(self, kind: type) -> str:
        """The name of a type."""
        known = TYPE_NAMES.get(kind)
        if known is not None:
            return known
        host = self._types.get(kind)
        return kind.__name__ if host is None else host.name

    def host_text(self, value: Any, debugging: bool) -> str:
        """The text form of a host value."""
        host = self._types.get(type(value))
        if host is None:
            return type(value).__name__
        chosen = host.to_debug if debugging and host.to_debug is not None else host.to_string
        return host.name if chosen is None else str(chosen(value))

    def text(self, value: Any) -> str:
        """The text that `print` shows for a value. Raises EvalError when it is too long."""
        return display(RunState(self, self.limits, Program(), Scope()), value)

    def getter(self, kind: type, name: str) -> Callable[[Any], Any] | None:
        """What reads a property."""
        key = (kind, name)
        return self.host.getters.get(key) or STANDARD.getters.get(key)

    def setter(self, kind: type, name: str) -> Callable[[Any, Any], Any] | None:
        """What writes a property."""
        return self.host.setters.get((kind, name))

    def index_getter(self, kind: type, index: type) -> Callable[[Any, Any], Any] | None:
        """What reads `value[index]` of a host type."""
        return self._index_getters.get((kind, index))

    def index_setter(
        self, kind: type, index: type, value: type
    ) -> Callable[[Any, Any, Any], None] | None:
        """What writes `value[index]` of a host type."""
        setters = self._index_setters
        return setters.get((kind, index, value)) or setters.get((kind, index, ANY))

    @staticmethod
    def assigning(operator: str) -> Operator:
        """What `op=` does."""
        return ASSIGNING[operator]

    # Compiling

    def compile(self, text: str, name: str = "") -> Script:
        """The script of `text`; `name` is its source name. Raises ParseError."""
        tree = parse(text, self.limits)
        with self._lock:
            compiled = compile_tree(self, tree, name)
        return Script(self, text, name, tree, compiled)

    def evaluate_text(self, st: RunState, env: Scope, program: Program, text: str) -> Any:
        """Runs the text of `eval` among the variables of its caller."""
        watch = st.check_clock
        tree = parse(text, st.limits, functions_allowed=False, watch=watch)
        compiled = compile_tree(
            self, tree, program=program, optimise=False, by_name=True, watch=watch
        )
        return _run_main(compiled, st, env)

    def evaluate_tree(self, st: RunState, tree: Tree) -> Any:
        """Runs the tree of a JSON text, which sees nothing of the script."""
        compiled = compile_tree(self, tree, optimise=False, watch=st.check_clock)
        return _run_main(compiled, st, Scope())

    # Running

    def eval(self, text: str, scope: Scope | None = None) -> Any:
        """Compiles and runs `text`. Raises ParseError or EvalError."""
        return self.run(self.compile(text), scope)

    def run(
        self,
        script: Script,
        scope: Scope | None = None,
        *,
        limits: Limits | None = None,
        keep_variables: bool = False,
    ) -> Any:
        """Runs a script; returns the value of its last statement. Raises EvalError.

        Changes to variables of `scope` stay; variables that the script itself declares at its top
        level are added to `scope` only with `keep_variables`.
        """
        variables = Scope() if scope is None else scope
        compiled = script.compiled
        if keep_variables:
            compiled = self._keeping(script)
        st = RunState(self, limits or self.limits, compiled.program, variables)
        size = len(variables.names)
        try:
            return _run_main(compiled, st, variables)
        except StopScript as stop:
            return stop.value
        except TerminateScript as stop:
            raise _terminated(stop) from None
        finally:
            if compiled.uses_names and not keep_variables:
                variables.rewind(size)

    def call_fn(
        self,
        script: Script,
        scope: Scope | None,
        name: str,
        *arguments: Any,
        limits: Limits | None = None,
    ) -> Any:
        """Calls a function of the script without running its statements. Raises EvalError."""
        program = script.compiled.program
        code: Code | None = program.functions.get((name, len(arguments)))
        st = RunState(self, limits or self.limits, program, Scope() if scope is None else scope)
        if code is None:
            label = f"{name} ({', '.join(self.type_name(type(a)) for a in arguments)})"
            message = f"Function not found: {label}"
            raise EvalError("ErrorFunctionNotFound", message, fields={"function": label})
        try:
            return code.function(st, None, *map(share, arguments))
        except StopScript as stop:
            return stop.value
        except TerminateScript as stop:
            raise _terminated(stop) from None

    def _keeping(self, script: Script) -> CompiledScript:
        """The script compiled so that its variables stay in the scope."""
        with self._lock:
            if script.keeping is None:
                tree = parse(script.text, self.limits)
                script.keeping = compile_tree(self, tree, script.source, by_name=True)
            return script.keeping

    # Modules

    def import_module(self, st: RunState, path: str) -> Module:
        """The module at `path`. Raises EvalError."""
        found = self._loaded.get(path)
        if found is None and self.resolver is not None:
            resolved = self.resolver(path, st.program.source)
            if isinstance(resolved, Script):
                found = self._run_module(st, resolved, path)
            else:
                found = resolved
            if found is not None:
                self._loaded[path] = found
        if found is None:
            raise EvalError(
                "ErrorModuleNotFound",
                f"Module not found: {path}",
                fields={"module": path},
                choice=1,
            )
        return found

    def _run_module(self, st: RunState, script: Script, path: str) -> Module:
        saved = st.program, st.exports, st.globals, st.modules
        compiled = script.compiled
        # modules that import each other in a circle end here
        if st.level >= st.max_level:
            raise EvalError("ErrorStackOverflow", "Stack overflow")
        st.level += 1
        st.program, st.exports, st.globals, st.modules = compiled.program, {}, {}, []
        try:
            _run_main(compiled, st, Scope())
            module = Module.of_script(compiled.program, st.exports, st.globals)
            module.modules.update(dict(st.modules))
            return module
        except RhaiError as error:
            if isinstance(error, ParseError) or not as_eval_error(error).catchable:
                raise
            raise EvalError(
                "ErrorInModule",
                f"in module '{path}'",
                fields={"module": path},
                inner=as_eval_error(error),
            ) from None
        finally:
            st.level -= 1
            st.program, st.exports, st.globals, st.modules = saved


def _terminated(stop: TerminateScript) -> EvalError:
    """The error of a run that its host ended; a token that is a text becomes part of it."""
    text = (
        f"Script terminated: {stop.token}" if isinstance(stop.token, str) else "Script terminated"
    )
    return EvalError("ErrorTerminated", text, value=stop.token)


def _run_main(compiled: CompiledScript, st: RunState, env: Scope) -> Any:
    """The value of a compiled script. Raises EvalError with its position."""
    try:
        return compiled.main(st, env)
    except Exception as error:
        traceback = error.__traceback__
        inside = traceback.tb_next if traceback is not None else None
        failure = placed(error, compiled.positions, line_of(inside))
        raise failure.with_traceback(None) from None
