# SPDX-License-Identifier: Apache-2.0
# The library: compiled once, archived as libisthmus.a and linked as
# libisthmus.so. It links libc, libdl and pthreads and nothing else.
add_library(isthmus_objects OBJECT ${ISTHMUS_SOURCES})
target_include_directories(isthmus_objects PRIVATE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(isthmus_objects PRIVATE isthmus_flags)
target_compile_definitions(isthmus_objects PRIVATE IST_BUILD)

# Where an installed library, or a program beside the command, finds the program
# isthmus-probe: relative, so that an installation may be moved.
set(ISTHMUS_PROBE_DIR "${CMAKE_INSTALL_LIBEXECDIR}/isthmus")
foreach(from LIB BIN)
  file(RELATIVE_PATH up "${CMAKE_INSTALL_FULL_${from}DIR}"
    "${CMAKE_INSTALL_FULL_LIBEXECDIR}/isthmus")
  set_property(SOURCE
    "${PROJECT_SOURCE_DIR}/src/backend/pjrt/child_program.c" APPEND PROPERTY
    COMPILE_DEFINITIONS "IST_PROBE_FROM_${from}=\"${up}\"")
endforeach()

# Inner loops of copies and conversions: more optimised, and files for each
# instruction set: the sources ask the compiler what it builds for, and so do
# their flags.
include(CheckSymbolExists)
check_symbol_exists(__x86_64__ "" ISTHMUS_X86_64)
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/tensor/copy_baseline.c"
  "${PROJECT_SOURCE_DIR}/src/tensor/copy_baseline_bits.c"
  "${PROJECT_SOURCE_DIR}/src/tensor/copy_neon.c"
  "${PROJECT_SOURCE_DIR}/src/tensor/convert_baseline.c"
  PROPERTIES COMPILE_OPTIONS "-O3")
if(ISTHMUS_X86_64)
  file(GLOB found "${PROJECT_SOURCE_DIR}/src/tensor/copy_avx2*.c")
  set_source_files_properties(${found} PROPERTIES COMPILE_OPTIONS "-O3;-mavx2")
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/tensor/copy_avx512.c"
    PROPERTIES COMPILE_OPTIONS "-O3;-mavx2;-mavx512f;-mavx512bw")
  set_source_files_properties("${PROJECT_SOURCE_DIR}/src/tensor/convert_avx2.c"
    PROPERTIES COMPILE_OPTIONS "-O3;-mavx2;-mf16c")
endif()

# src/io reads JSON with jsmn, a header of Debian's libjsmn-dev.
if(ISTHMUS_SOURCES MATCHES "/src/io/")
  find_path(ISTHMUS_JSMN jsmn.h HINTS "${ISTHMUS_JSMN_INCLUDE}")
  if(NOT ISTHMUS_JSMN)
    message(FATAL_ERROR "isthmus: cannot build: jsmn.h was not found; needs "
      "Debian's libjsmn-dev, or -DISTHMUS_JSMN_INCLUDE=FOLDER")
  endif()
  target_include_directories(isthmus_objects SYSTEM PRIVATE "${ISTHMUS_JSMN}")
endif()

function(isthmus_add_library target kind)
  add_library(${target} ${kind} $<TARGET_OBJECTS:isthmus_objects>)
  target_include_directories(${target} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${target} PRIVATE
    $<BUILD_INTERFACE:isthmus_flags> Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME isthmus LINKER_LANGUAGE C)
endfunction()

isthmus_add_library(isthmus_static STATIC)
isthmus_add_library(isthmus_shared SHARED)
set_target_properties(isthmus_shared PROPERTIES EXPORT_NAME isthmus
  VERSION ${PROJECT_VERSION})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set_target_properties(isthmus_shared PROPERTIES
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
else()
  set_target_properties(isthmus_shared PROPERTIES
    SOVERSION ${PROJECT_VERSION_MAJOR})
endif()
if(NOT APPLE)
  target_link_options(isthmus_shared PRIVATE -Wl,--as-needed)
  if(NOT ISTHMUS_SANITIZE)
    target_link_options(isthmus_shared PRIVATE -Wl,--no-undefined)
  endif()
endif()
add_library(isthmus::isthmus ALIAS isthmus_shared)
add_library(isthmus::isthmus_static ALIAS isthmus_static)
