# SPDX-License-Identifier: Apache-2.0
# The command `isthmus`, linked statically so that it runs from anywhere.
add_executable(isthmus_command ${ISTHMUS_CLI})
set_target_properties(isthmus_command PROPERTIES OUTPUT_NAME isthmus
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
target_include_directories(isthmus_command PRIVATE
  "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src"
  "${PROJECT_SOURCE_DIR}/cli")
target_link_libraries(isthmus_command PRIVATE isthmus_static isthmus_flags)
