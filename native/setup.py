"""One wheel for all Pythons with a GIL: the module uses the limited API of 3.11."""

from setuptools import Extension, setup

reader = Extension(
    "logicalrep_native",
    ["src/columns.c", "src/compile.c", "src/gather.c", "src/module.c", "src/read.c", "src/utf8.c", "src/walks.c"],
    depends=["src/buffers.h", "src/columns.h", "src/program.h", "src/utf8.h", "src/walk.h"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    extra_compile_args=["-std=c11", "-fvisibility=hidden"],
    py_limited_api=True,
)
setup(ext_modules=[reader], options={"bdist_wheel": {"py_limited_api": "cp311"}})
