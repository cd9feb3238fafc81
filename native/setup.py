"""One wheel for all Pythons with a GIL: the module uses the limited API of 3.11.

A machine without a C compiler, or a Python without a GIL, installs the distribution without its module.
"""

import os
import shlex
import shutil
import sys
import sysconfig
from glob import glob

from setuptools import Extension, setup

IS_WINDOWS = sys.platform == "win32"


def can_compile() -> bool:
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return IS_WINDOWS or shutil.which(shlex.split(compiler)[0]) is not None


reader = Extension(
    "logicalrep_native",
    sorted(glob("src/*.c")),
    depends=sorted(glob("src/*.h")),
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    extra_compile_args=["/O2", "/std:c11"] if IS_WINDOWS else ["-std=c11", "-O3", "-fvisibility=hidden"],
    py_limited_api=True,
    # setuptools alone finds Microsoft's compiler, and says so while it builds.
    optional=IS_WINDOWS,
)
setup(ext_modules=[reader] if can_compile() else [], options={"bdist_wheel": {"py_limited_api": "cp311"}})
