"""Every private name of numba's that kernels are compiled with, and that no other module uses one."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import numba
import pytest
from numba.core import compiler, options, typed_passes, untyped_passes
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import PassManager

from odejet.jets import numba_internals

SOURCES = Path(numba_internals.__file__).parents[1]
PRIVATE = ("numba.core", "numba.np", "numba._dynfunc", "numba.misc", "numba.experimental")


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (numba._dynfunc, ["make_function"]),
        (
            JITCodeLibrary,
            [
                "_optimize_functions",
                "_optimize_final_module",
                "finalize",
                "enable_object_caching",
                "_finalize_dynamic_globals",
            ],
        ),
        (numba.core.codegen.CPUCodegen, ["_module_pass_manager"]),
        (compiler.CompilerBase, ["define_pipelines"]),
        (
            compiler.DefaultPassBuilder,
            ["define_untyped_pipeline", "define_typed_pipeline", "define_nopython_lowering_pipeline"],
        ),
        (PassManager, ["add_pass", "finalize", "passes"]),
        (typed_passes.NativeLowering, ["run_pass"]),
        (numba.core.base.BaseContext, ["insert_user_function"]),
        (numba.core.event.Listener, ["on_start", "on_end"]),
        (numba.core.event, ["register"]),
        (numba_internals.CFunc, ["enable_caching", "compile", "address"]),
        (numba_internals.cgutils, ["unpack_tuple", "alloca_once_value", "gep_inbounds"]),
    ],
)
def test_numba_has_what_we_build_on(owner: object, names: list[str]) -> None:
    known = dir(owner) + set_on_instances(owner)
    assert [name for name in names if name not in known] == []


def set_on_instances(owner: object) -> list[str]:
    """Names that a class and those it comes from set on their instances."""
    classes = inspect.getmro(owner)[:-1] if inspect.isclass(owner) else ()
    trees = [ast.parse(inspect.cleandoc("\n" + inspect.getsource(each))) for each in classes]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return [node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]


def test_instances_have_the_attributes_that_we_read() -> None:
    library = set_on_instances(JITCodeLibrary)
    assert {"_codegen", "_finalized", "_final_module", "_linking_libraries", "_reload_init"} <= set(library)
    assert "_data_layout" in set_on_instances(numba.core.codegen.CPUCodegen)
    assert "_cache_file" in set_on_instances(FunctionCache)
    assert "_source_stamp" in set_on_instances(IndexDataCacheFile)
    assert hasattr(IndexDataCacheFile, "_load_index")
    assert "_nrt" in dir(options.DefaultOptions)
    for each in numba_internals._SPARED:
        assert getattr(typed_passes, each.__name__, None) or getattr(untyped_passes, each.__name__)


def test_passes_that_kernels_are_spared_are_in_numbas_own_pipeline() -> None:
    """One that numba has renamed would be run for every kernel without a word."""
    state = compiler.StateDict()
    state.flags, state.func_ir = compiler.Flags(), None
    builder = compiler.DefaultPassBuilder
    passes = [
        each
        for pipeline in (builder.define_untyped_pipeline, builder.define_typed_pipeline)
        for each, _ in pipeline(state).passes
    ]
    passes += [each for each, _ in builder.define_nopython_lowering_pipeline(state).passes]
    assert [each.__name__ for each in numba_internals._SPARED if each not in passes] == []
    assert typed_passes.NativeLowering in passes


def test_a_stamp_is_what_the_cache_compares() -> None:
    def plain(x: float) -> float:
        return x

    kernel = numba.njit(cache=True)(plain)
    numba_internals.stamp(kernel, ("a", 1))
    assert kernel._cache._cache_file._source_stamp == ("a", 1)


def test_an_entry_point_is_the_code_for_the_types_given() -> None:
    doubled = numba.njit(lambda x: 2 * x)
    assert doubled(1.5) == 3.0
    assert numba_internals.entry_point(doubled, (0.25,))(0.25) == 0.5


def private_uses(path: Path) -> list[str]:
    """Imports of numba's private modules in a source, with their lines."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        if any(f"{module}.".startswith(f"{name}.") for module in modules for name in PRIVATE):
            found.append(f"{path.name}:{node.lineno}")
    return found


def test_no_other_module_imports_private_parts() -> None:
    own = Path(numba_internals.__file__)
    assert private_uses(own), "this test would see them"
    assert [use for path in SOURCES.rglob("*.py") if path != own for use in private_uses(path)] == []
