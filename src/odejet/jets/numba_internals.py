"""Numba's internals: how kernels are compiled, and every name of numba's that it does not promise to keep.

No other module imports `numba.core` or `numba.np` or touches an attribute of numba's with an underscore: a new version
of numba can break this file alone, and `tests/jets/test_numba_internals.py` says which name is gone.

numba makes each function it compiles ready to be called from Python: its code is optimised together with that of all
it calls, turned into machine code and loaded; and again as a part of whatever calls it, and of what calls that.  For
kernels that only others call all of this is in vain but for the last time.  Here the code of a part is left as it was
written down, and what Python calls takes in all parts at once.  Passes over what kernels do not have are left out:
closures, context managers, literal loops, exceptions made at run time.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from numba import _dynfunc
from numba.core import cgutils, event, typed_passes, untyped_passes
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typing import signature
from numba.np.numpy_support import from_dtype

__all__ = [
    "ByHandCompiler",
    "CFunc",
    "PartCompiler",
    "WholeCompiler",
    "cgutils",
    "entry_point",
    "event",
    "forgiving",
    "from_dtype",
    "import_arrays",
    "signature",
    "stamp",
]

WITHOUT_REFERENCES = {"_nrt": False}
"""Option of `njit` for kernels that make no arrays: counting references would take longer than some kernels."""

_SPARED = (
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.RewriteDynamicRaises,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    typed_passes.InlineOverloads,
    typed_passes.NoPythonSupportedFeatureValidation,
    typed_passes.AnnotateTypes,
    typed_passes.DumpParforDiagnostics,
)


class _Library(JITCodeLibrary):
    """Code that is left as it was written down until it is whole."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout


class _Part(_Library):
    """Code to be linked into other code."""

    def finalize(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _Whole(_Library):
    """Code that Python calls, with all its parts."""

    vectors: dict[str, bool] = {}  # noqa: RUF012 - never changed

    def _optimize_final_module(self) -> None:
        # Once: numba begins with passes for the counting of references, which kernels do not have.
        passes, builder = self._codegen._module_pass_manager(**self.vectors)
        passes.run(self._final_module, builder)


class _ByHand(_Whole):
    """Such code with vectors of its own: looking for more takes a fifth of LLVM's time and makes it no faster."""

    vectors: dict[str, bool] = {"loop_vectorize": False, "slp_vectorize": False}  # noqa: RUF012 - never changed


@register_pass(mutates_CFG=True, analysis_only=False)
class _WholeLowering(typed_passes.NativeLowering):
    """numba's own, to code for a `_Whole`."""

    _name = "odejet_whole_lowering"
    kind: type[_Whole] = _Whole

    def run_pass(self, state: Any) -> bool:
        state.library = self.kind(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().run_pass(state)


@register_pass(mutates_CFG=True, analysis_only=False)
class _ByHandLowering(_WholeLowering):
    """To code for a `_ByHand`."""

    _name = "odejet_by_hand_lowering"
    kind = _ByHand


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(typed_passes.NativeLowering):
    """To code for a `_Part`, and a function that stands for it where others call it."""

    _name = "odejet_part_lowering"

    def run_pass(self, state: Any) -> bool:
        library = state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        name, nowhere = lowered.fndesc.qualname.split(".")[-1], 0
        function = _dynfunc.make_function(lowered.fndesc.lookup_module(), name, "", nowhere, lowered.env, (library,))
        # Whoever calls it links it with all that it calls, each once.
        linked = list(dict.fromkeys([library, *library._linking_libraries]))
        state.targetctx.insert_user_function(function, lowered.fndesc, linked)
        state.reload_init.extend(library._reload_init)
        state["cr"] = lowered._replace(cfunc=function)
        return True


class _Compiler(CompilerBase):
    """numba's own passes, but for those that kernels are spared."""

    lowering: type

    def define_pipelines(self) -> list[PassManager]:
        whole = PassManager("odejet")
        for passes in (
            DefaultPassBuilder.define_untyped_pipeline(self.state),
            DefaultPassBuilder.define_typed_pipeline(self.state),
            DefaultPassBuilder.define_nopython_lowering_pipeline(self.state),
        ):
            for each, description in passes.passes:
                if each not in _SPARED:
                    whole.add_pass(self.lowering if each is typed_passes.NativeLowering else each, description)
        whole.finalize()
        return [whole]


class PartCompiler(_Compiler):
    """Compile what only other kernels call."""

    lowering = _PartLowering


class WholeCompiler(_Compiler):
    """Compile what Python calls, with all the kernels it calls."""

    lowering = _WholeLowering


class ByHandCompiler(_Compiler):
    """Compile what Python calls and what is written in vectors already."""

    lowering = _ByHandLowering


def stamp(function: Any, sources: Sequence[Any]) -> None:
    """Let the compiled code on disk of a cached function count as old when any of these sources changes.

    numba looks only at the file in which the function stands.
    """
    function._cache._cache_file._source_stamp = sources


def forgiving(function: Any) -> Any:
    """Let compiled code on disk count as none where it knows types that are gone, as after an update of odejet.

    numba reads the types of all arguments from the disk before it looks whether they are those of an older source.
    """
    file = function._cache._cache_file
    load = file._load_index

    def load_index() -> Any:
        try:
            return load()
        except (AttributeError, ImportError):
            return {}

    file._load_index = load_index
    return function


def entry_point(dispatcher: Any, arguments: Sequence[Any]) -> Callable[..., Any]:
    """Return the compiled code for the types of these arguments, to be called without another look at types."""
    return dispatcher.overloads[tuple(map(dispatcher.typeof_pyval, arguments))].entry_point


def import_arrays() -> None:
    """Import now what numba would import at the first call of a kernel.

    On the way numba asks whether SciPy has a BLAS, which imports all of SciPy's linear algebra and takes longer than
    the rest.  SciPy is a requirement, so the answer is known; whoever compiles linear algebra later imports it then.
    """
    blas = "scipy.linalg.cython_blas"
    known = blas in sys.modules
    sys.modules.setdefault(blas, ModuleType(blas))
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        if not known:
            del sys.modules[blas]
