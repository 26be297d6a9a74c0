# SPDX-License-Identifier: Apache-2.0
# The C tests: each tests/FOLDER/NAME_test.c is one cmocka executable, linked
# to the static library so that it sees internals. tests/support/*.c is linked
# into each of them. tests/lying_pjrt/*.c is a stand-alone plugin.
find_path(CMOCKA_INCLUDE cmocka.h)
find_library(CMOCKA_LIBRARY cmocka)
if(NOT CMOCKA_INCLUDE OR NOT CMOCKA_LIBRARY)
  message(FATAL_ERROR "isthmus: cannot build the tests: cmocka was not found; "
    "needs Debian's libcmocka-dev, or -DISTHMUS_TESTS=OFF")
endif()

# Compiled, never run: fails when a pinned offset or value moved.
add_library(isthmus_layout OBJECT "${PROJECT_SOURCE_DIR}/abi/layout.c")
target_include_directories(isthmus_layout PRIVATE
  "${PROJECT_SOURCE_DIR}/include")
target_link_libraries(isthmus_layout PRIVATE isthmus_flags)

# A plugin sees no source of the library: only its own folder and C.
file(GLOB lying CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/lying_pjrt/*.c")
list(FILTER lying EXCLUDE REGEX "_test\\.c$")
if(lying)
  add_library(lying_pjrt MODULE ${lying})
  set_target_properties(lying_pjrt PROPERTIES PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
  target_include_directories(lying_pjrt PRIVATE
    "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src"
    "${PROJECT_SOURCE_DIR}/tests/lying_pjrt")
  target_link_libraries(lying_pjrt PRIVATE isthmus_flags Threads::Threads)
endif()

# A plugin that misbehaves where its environment says, for the child process.
add_library(crashing_pjrt MODULE
  "${PROJECT_SOURCE_DIR}/tests/crashing_pjrt/crashing.c")
set_target_properties(crashing_pjrt PROPERTIES PREFIX ""
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
target_include_directories(crashing_pjrt PRIVATE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(crashing_pjrt PRIVATE isthmus_flags ${CMAKE_DL_LIBS})

file(GLOB support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.c")
set(test_includes "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src"
  "${PROJECT_SOURCE_DIR}/tests")
if(support)
  add_library(isthmus_support STATIC ${support})
  target_include_directories(isthmus_support PRIVATE ${test_includes})
  target_include_directories(isthmus_support SYSTEM PRIVATE
    "${CMOCKA_INCLUDE}")
  target_link_libraries(isthmus_support PRIVATE isthmus_static isthmus_flags)
endif()

# What a test may ask its surroundings for; ./dev sets the same. A plugin's
# variable is unset where that plugin is not on the machine.
set(test_environment "ISTHMUS_SOURCE=${PROJECT_SOURCE_DIR}"
  "ISTHMUS_BUILD=${PROJECT_BINARY_DIR}")
if(lying)
  list(APPEND test_environment
    "ISTHMUS_LYING_PJRT=${PROJECT_BINARY_DIR}/lying_pjrt.so")
endif()
set(ISTHMUS_SITE "" CACHE PATH "site-packages with the plugin wheels")
if(NOT ISTHMUS_SITE)
  file(GLOB ISTHMUS_SITE "${PROJECT_SOURCE_DIR}/.venv/lib/*/site-packages")
endif()
foreach(plugin
    P1=lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so
    P2=xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so
    P3=fastatomstruct_xla_cpu/libpjrt_cpu.so)
  string(REGEX REPLACE "=.*" "" key "${plugin}")
  string(REGEX REPLACE ".*=" "" file "${plugin}")
  if(EXISTS "${ISTHMUS_SITE}/${file}")
    list(APPEND test_environment "ISTHMUS_${key}=${ISTHMUS_SITE}/${file}")
  endif()
endforeach()

file(GLOB tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*/*_test.c")
foreach(source IN LISTS tests)
  get_filename_component(name "${source}" NAME_WE)
  get_filename_component(folder "${source}" DIRECTORY)
  get_filename_component(folder "${folder}" NAME)
  list(APPEND test_folders "${folder}")
  add_executable(${name} "${source}")
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/${folder}")
  target_include_directories(${name} PRIVATE ${test_includes})
  target_include_directories(${name} SYSTEM PRIVATE "${CMOCKA_INCLUDE}")
  target_link_libraries(${name} PRIVATE
    $<TARGET_NAME_IF_EXISTS:isthmus_support> isthmus_static isthmus_flags
    "${CMOCKA_LIBRARY}" Threads::Threads ${CMAKE_DL_LIBS})
  add_test(NAME ${folder}/${name} COMMAND ${name})
  set_tests_properties(${folder}/${name} PROPERTIES
    ENVIRONMENT "${test_environment}")
  if(lying)
    add_dependencies(${name} lying_pjrt crashing_pjrt isthmus_probe)
  endif()
endforeach()

list(REMOVE_DUPLICATES test_folders)

# The library is part of each test, so isthmus-probe is looked for beside it;
# for another machine's processor it is started by the emulator.
foreach(folder IN LISTS test_folders)
  set(beside "${PROJECT_BINARY_DIR}/tests/${folder}/isthmus-probe")
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
    file(GENERATE OUTPUT "${beside}" CONTENT
      "#!/bin/sh\nexec ${emulator} \"$<TARGET_FILE:isthmus_probe>\" \"$@\"\n"
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  else()
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/tests/${folder}")
    file(CREATE_LINK "${PROJECT_BINARY_DIR}/isthmus-probe" "${beside}" SYMBOLIC)
  endif()
endforeach()

# The fuzz targets, tests/fuzz/NAME_fuzz.c, each with an entry for libFuzzer;
# as executables only in a build for fuzzing (`./dev fuzz`). In every build
# replay_test has them all, their entries under their own names.
file(GLOB targets CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.c")
file(STRINGS "${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_targets.def" listed
  REGEX "^FUZZ_TARGET")
foreach(source IN LISTS targets)
  get_filename_component(name "${source}" NAME_WE)
  if(NOT "FUZZ_TARGET(${name})" IN_LIST listed)
    message(FATAL_ERROR "isthmus: tests/fuzz/fuzz_targets.def has no ${name}")
  endif()
  add_library(replay_${name} OBJECT "${source}")
  target_include_directories(replay_${name} PRIVATE ${test_includes})
  target_link_libraries(replay_${name} PRIVATE isthmus_flags)
  target_compile_definitions(replay_${name} PRIVATE
    "LLVMFuzzerTestOneInput=${name}")
  target_sources(replay_test PRIVATE $<TARGET_OBJECTS:replay_${name}>)
  if(ISTHMUS_SANITIZE STREQUAL "fuzzer")
    add_executable(${name} "${source}")
    set_target_properties(${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
    target_include_directories(${name} PRIVATE ${test_includes})
    target_link_libraries(${name} PRIVATE isthmus_support isthmus_static
      isthmus_flags -fsanitize=fuzzer)
  endif()
endforeach()
