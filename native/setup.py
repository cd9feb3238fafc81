"""One wheel for all Pythons with a GIL: the module uses the limited API of 3.11."""

from glob import glob

from setuptools import Extension, setup

reader = Extension(
    "logicalrep_native",
    sorted(glob("src/*.c")),
    depends=sorted(glob("src/*.h")),
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    extra_compile_args=["-std=c11", "-O3", "-fvisibility=hidden"],
    py_limited_api=True,
)
setup(ext_modules=[reader], options={"bdist_wheel": {"py_limited_api": "cp311"}})
