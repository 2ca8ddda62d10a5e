"""The C functions of Faro's collectives, by ctypes: native/jni/src/collective/c_interface.rs.

The library is the one of the jar. $FARO_LIBRARY_PATH names another file.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import tempfile
import zipfile
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

from . import jar

PATH_VARIABLE = "FARO_LIBRARY_PATH"
FILE = "libfaro_jni.so"
INTERFACE_VERSION = 2
# What a function returns, and its parameters.
FUNCTIONS = {
    "faro_interface_version": (c_uint32, []),
    "faro_last_error": (c_size_t, [c_char_p, c_size_t]),
    "faro_last_error_is_argument": (c_int32, []),
    "faro_endpoint_open": (c_int64, [c_char_p]),
    "faro_endpoint_close": (c_int32, [c_int64]),
    "faro_member_open": (c_uint64, [c_int64, c_char_p]),
    "faro_member_release": (None, [c_uint64]),
    "faro_bootstrap_id": (c_int64, [c_uint64, c_char_p, c_size_t]),
    "faro_team_join": (c_uint64, [c_uint64, c_uint32, POINTER(c_char_p), c_uint32]),
    "faro_team_keep_slow_apart": (c_int32, [c_uint64]),
    "faro_team_reduce": (
        c_int32,
        [
            *(c_uint64, c_void_p, c_uint64, c_int32),
            *(c_int32, c_int32, c_uint64, c_int32, c_int32, c_int64),
        ],
    ),
    "faro_team_leave": (None, [c_uint64]),
}
MAX_TEXT = 64 << 10


class FaroUnavailableError(Exception):
    """Faro's library cannot be used here; the text gives the reason."""


@functools.lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The library, loaded once. A call of its functions lets other threads of Python run."""
    given = os.environ.get(PATH_VARIABLE)
    try:
        loaded = ctypes.CDLL(given) if given else _from_jar()
        version = loaded.faro_interface_version()
        for name, (result, parameters) in FUNCTIONS.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, parameters
    except OSError as error:
        raise FaroUnavailableError(f"cannot load {given or FILE}: {error}") from error
    except AttributeError as error:
        raise FaroUnavailableError(f"{given or FILE} is not Faro's, or too old: {error}") from error
    if version != INTERFACE_VERSION:
        raise FaroUnavailableError(
            f"{given or FILE} has version {version} of the collectives' functions, "
            f"this package wants {INTERFACE_VERSION}"
        )
    return loaded


def _from_jar() -> ctypes.CDLL:
    """Writes the jar's library for this machine into a temporary file, which goes once it is
    loaded."""
    name = f"META-INF/native/{sys.platform}-{platform.machine()}/{FILE}"
    try:
        with zipfile.ZipFile(jar()) as opened:
            content = opened.read(name)
    except (FileNotFoundError, KeyError) as error:
        raise FaroUnavailableError(f"{error.args[0]}; ${PATH_VARIABLE} may name {FILE}") from error
    with tempfile.NamedTemporaryFile(prefix="faro-", suffix=".so") as file:
        file.write(content)
        file.flush()
        return ctypes.CDLL(file.name)


def last_error() -> str:
    """Why this thread's last call failed."""
    buffer = ctypes.create_string_buffer(MAX_TEXT)
    length = library().faro_last_error(buffer, MAX_TEXT)
    return buffer.raw[: min(length, MAX_TEXT)].decode("utf-8", "replace")


def last_error_is_argument() -> bool:
    """Whether this thread's last call failed because of what it was given."""
    return library().faro_last_error_is_argument() != 0
