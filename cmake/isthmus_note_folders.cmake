# SPDX-License-Identifier: Apache-2.0
# Run by `cmake --install`: adds to ISTHMUS_NOTE each of ISTHMUS_FOLDERS, and
# the prefix itself, if the installation is about to make it.
set(noted)
foreach(folder IN LISTS ISTHMUS_FOLDERS)
  list(APPEND noted "${CMAKE_INSTALL_PREFIX}/${folder}")
endforeach()
list(APPEND noted "${CMAKE_INSTALL_PREFIX}")
foreach(folder IN LISTS noted)
  if(NOT EXISTS "$ENV{DESTDIR}${folder}")
    file(APPEND "${ISTHMUS_NOTE}" "$ENV{DESTDIR}${folder}\n")
  endif()
endforeach()
