"""Compiles the kernel of a folder for a GPU that need not be here.

  compile.py FOLDER ARCHITECTURE

FOLDER has kernel.py and generated.py. It gets kernel.json, and, for an ARCHITECTURE such as sm_90, kernel.cubin and
kernel.ptx; for "emulated" kernel.ttir, Triton's intermediate representation before it is made for a kind of GPU.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

# The next version of Triton has another default. Multiplications and additions are fused as by other compilers.
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
# The assembler's words on registers go to the standard output.
os.environ["TRITON_DUMP_PTXAS_LOG"] = "1"

EMULATED = "emulated"
OLDEST = 80
# Addresses of scratch memory, which Triton's machine code has behind those of its arguments.
HIDDEN = 2


def pointers(signature: dict[str, object]) -> list[tuple[int, ...]]:
    """The places of pointers in a signature, which has tuples of them, too."""
    places: list[tuple[int, ...]] = []
    for number, kind in enumerate(signature.values()):
        if isinstance(kind, tuple):
            places += [(number, inner) for inner in range(len(kind))]
        elif kind != "constexpr":
            places.append((number,))
    return places


def compile_kernel(folder: Path, architecture: str) -> None:
    os.environ["TRITON_CACHE_DIR"] = str(folder / "cache")
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    import generated  # type: ignore[import-not-found]
    import kernel  # type: ignore[import-not-found]
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    is_emulated = architecture == EMULATED
    signature = generated.SIGNATURE | dict.fromkeys(generated.CONSTANTS, "constexpr")
    source = ASTSource(
        kernel.collage_kernel,
        signature,
        constexprs=generated.CONSTANTS,
        attrs={place: [["tt.divisibility", 16]] for place in pointers(generated.SIGNATURE)},
    )
    number = OLDEST if is_emulated else int(architecture.removeprefix("sm_"))
    target = GPUTarget("cuda", number, 32)
    options = {"num_warps": generated.WARPS, "num_stages": generated.STAGES}
    if is_emulated:
        lowered = intermediate(source, target, options)
        (folder / "kernel.ttir").write_text(lowered)
        parameters = len(pointers(generated.SIGNATURE)) + HIDDEN
        facts = {"warps": generated.WARPS, "shared_bytes": 0, "parameters": parameters}
    else:
        compiled = triton.compile(source, target=target, options=options)
        ptx = compiled.asm["ptx"]
        if compiled.metadata.global_scratch_size or compiled.metadata.profile_scratch_size:
            sys.exit("the kernel wants scratch memory")
        (folder / "kernel.cubin").write_bytes(compiled.asm["cubin"])
        (folder / "kernel.ptx").write_text(ptx)
        entry = ptx[ptx.index(".entry") : ptx.index("{", ptx.index(".entry"))]
        facts = {
            "warps": compiled.metadata.num_warps,
            "shared_bytes": compiled.metadata.shared,
            "parameters": len(re.findall(r"\.param", entry)),
        }
    (folder / "kernel.json").write_text(json.dumps(facts))


def intermediate(source: object, target: object, options: dict[str, int]) -> str:
    """Triton's intermediate representation behind its passes that are for all GPUs."""
    from triton._C.libtriton import ir
    from triton.compiler.compiler import make_backend

    backend = make_backend(target)
    parsed = backend.parse_options(options)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(  # type: ignore[attr-defined]
        target, parsed, backend.get_codegen_implementation(parsed), backend.get_module_map(), context
    )
    stages: dict[str, object] = {}
    backend.add_stages(stages, parsed, source.language)  # type: ignore[attr-defined]
    return stages["ttir"](module, {}).str_nodebug()  # type: ignore[operator]


if __name__ == "__main__":
    try:
        compile_kernel(Path(sys.argv[1]), sys.argv[2])
    except Exception as error:  # the last line says what was wrong
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        sys.exit(f"{type(cause).__name__}: " + " ".join(str(cause).split()))
