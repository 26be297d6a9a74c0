# SPDX-License-Identifier: Apache-2.0
# Warning and sanitizer flags, carried by one interface target.
add_library(isthmus_flags INTERFACE)
target_compile_options(isthmus_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(ISTHMUS_WERROR)
  target_compile_options(isthmus_flags INTERFACE -Werror)
endif()

if(ISTHMUS_SANITIZE STREQUAL "fuzzer")
  set(flags -fsanitize=fuzzer-no-link,address,undefined)
elseif(ISTHMUS_SANITIZE)
  set(flags -fsanitize=${ISTHMUS_SANITIZE})
endif()
if(ISTHMUS_SANITIZE)
  target_compile_options(isthmus_flags INTERFACE
    ${flags} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(isthmus_flags INTERFACE ${flags})
endif()
