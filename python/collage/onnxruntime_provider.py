"""Collage within ONNX Runtime: an execution provider for its sessions.

    import collage.onnxruntime_provider
    import onnxruntime

    session = onnxruntime.InferenceSession("model.onnx", collage.onnxruntime_provider.options(budget="60s"))

The provider takes the whole model, or those parts that Collage can compile; the rest remains with ONNX Runtime. The first
session of a model compiles it, in a process of its own, for a minute unless ``budget`` says otherwise. Executables are kept
in a folder, where later sessions find them by the content of the model, the settings, and all versions. With ONNX Runtime's
own ``ep.context_enable`` a session writes a model that holds the executables, which later sessions load at once
(docs/execution-provider.md).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from collage import _arguments, _core
from collage.errors import UnavailableError

if TYPE_CHECKING:
    import onnxruntime
    from typing_extensions import Unpack

    from collage._settings import Settings

__all__ = ["add_to", "get_ep_name", "get_library_path", "options", "register"]

_NAME = "CollageExecutionProvider"
_LIBRARY = "libcollage_onnxruntime_provider.so"


def get_ep_name() -> str:
    """The name under which sessions list the provider."""
    return _NAME


def get_library_path() -> str:
    """The library, for ``onnxruntime.register_execution_provider_library`` and its like in other languages."""
    path = _core.find_beside_modules(_LIBRARY)
    if path is None:
        raise UnavailableError(f"{_LIBRARY} is not beside Collage's libraries", hint="install the whole of Collage")
    return path


def register() -> None:
    """Makes the provider known to ONNX Runtime, once a process."""
    import onnxruntime

    if not any(device.ep_name == _NAME for device in onnxruntime.get_ep_devices()):
        onnxruntime.register_execution_provider_library(_NAME, get_library_path())


def _text(value: Any) -> str:
    """A setting's value as its flag takes it; values of flags that may be repeated are separated by semicolons."""
    if isinstance(value, Mapping):
        return ";".join(f"{name}={_text(one)}" for name, one in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        is_shape = all(isinstance(one, int) for one in value)
        return ("x" if is_shape else ",").join(str(one) for one in value)
    return str(value)


def add_to(
    session_options: onnxruntime.SessionOptions,
    *,
    cache_folder: str | os.PathLike[str] | None = None,
    **settings: Unpack[Settings],
) -> None:
    """Gives the provider to a session that is made with these options, in front of ONNX Runtime's own.

    Args:
        session_options: ``onnxruntime.SessionOptions``.
        cache_folder: where executables are kept; None: ``$XDG_CACHE_HOME/collage/executables``, else
            ``~/.cache/collage/executables``. It may be emptied at any time.
        **settings: of `collage.compile`, by name; ``threads`` are the session's ``intra_op_num_threads`` if it sets them.

    Raises:
        InputError: for threads that contradict the session's. Names and values that are no settings are told when the session
            is made.
    """
    import onnxruntime

    register()
    threads = _arguments.session_threads(settings.get("threads"), session_options.intra_op_num_threads)
    given: dict[str, Any] = {**settings, "threads": threads}
    texts = {name: _text(value) for name, value in given.items() if value is not None}
    if cache_folder is not None:
        texts["cache_folder"] = os.fspath(cache_folder)
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == _NAME]
    session_options.add_provider_for_devices(devices, texts)


def options(
    *, cache_folder: str | os.PathLike[str] | None = None, **settings: Unpack[Settings]
) -> onnxruntime.SessionOptions:
    """New options of a session that has the provider; arguments are those of `add_to`."""
    import onnxruntime

    made = onnxruntime.SessionOptions()
    add_to(made, cache_folder=cache_folder, **settings)
    return made
