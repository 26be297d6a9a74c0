# SPDX-License-Identifier: Apache-2.0
# The Python extension isthmus._core: one abi3 module for CPython 3.11 and
# later, with the static library inside. Outside a wheel build it is put into
# build/python/isthmus, which ./dev fills up with links to python/isthmus.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c
    "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
  OUTPUT_VARIABLE free_threaded OUTPUT_STRIP_TRAILING_WHITESPACE)
if(free_threaded STREQUAL "1")
  message(FATAL_ERROR "isthmus: cannot build for free-threaded Python: the "
    "extension uses the stable ABI; needs a CPython 3.11+ with the GIL")
endif()

file(GLOB ISTHMUS_CORE CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/python/isthmus/_core*.c")
if(ISTHMUS_CORE)
  python_add_library(isthmus_core MODULE ${ISTHMUS_CORE})
  set_target_properties(isthmus_core PROPERTIES PREFIX "" SUFFIX ".abi3.so"
    OUTPUT_NAME _core
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/python/isthmus")
  target_compile_definitions(isthmus_core PRIVATE Py_LIMITED_API=0x030B0000)
  target_include_directories(isthmus_core PRIVATE
    "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src"
    "${PROJECT_SOURCE_DIR}/python/isthmus")
  target_link_libraries(isthmus_core PRIVATE isthmus_static isthmus_flags)
  if(NOT APPLE)
    target_link_options(isthmus_core PRIVATE
      "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/isthmus_core.map")
  endif()
endif()

if(SKBUILD)
  if(ISTHMUS_CORE)
    install(TARGETS isthmus_core DESTINATION isthmus COMPONENT python)
  endif()
  install(FILES ${ISTHMUS_HEADERS} DESTINATION isthmus/include/isthmus
    COMPONENT python)
  if(TARGET isthmus_command)
    install(TARGETS isthmus_command isthmus_probe DESTINATION isthmus/bin
      COMPONENT python)
  endif()
endif()
