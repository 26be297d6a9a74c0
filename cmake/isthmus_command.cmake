# SPDX-License-Identifier: Apache-2.0
# The command `isthmus`, linked statically so that it runs from anywhere.
add_executable(isthmus_command ${ISTHMUS_CLI})
set_target_properties(isthmus_command PROPERTIES OUTPUT_NAME isthmus
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
target_include_directories(isthmus_command PRIVATE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src"
  "${PROJECT_SOURCE_DIR}/cli")
target_link_libraries(isthmus_command PRIVATE isthmus_static isthmus_flags)

# The program isthmus-probe, in which the library opens an unknown plugin first.
# It is no command for people, so it is installed to libexec and not to bin.
file(GLOB ISTHMUS_PROBE CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/cli/child/*.c")
add_executable(isthmus_probe ${ISTHMUS_PROBE})
set_target_properties(isthmus_probe PROPERTIES OUTPUT_NAME isthmus-probe
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
target_include_directories(isthmus_probe PRIVATE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src"
  "${PROJECT_SOURCE_DIR}/cli/child")
target_link_libraries(isthmus_probe PRIVATE isthmus_static isthmus_flags)
