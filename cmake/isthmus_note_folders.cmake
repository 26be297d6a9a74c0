# SPDX-License-Identifier: Apache-2.0
# Run by `cmake --install`: adds to ISTHMUS_NOTE each of ISTHMUS_FOLDERS and
# their parents up to the prefix that the installation is about to make,
# children before parents.
set(noted)
foreach(folder IN LISTS ISTHMUS_FOLDERS)
  set(path "${CMAKE_INSTALL_PREFIX}/${folder}")
  string(LENGTH "${CMAKE_INSTALL_PREFIX}" shortest)
  string(LENGTH "${path}" length)
  while(NOT length LESS shortest)
    if(NOT EXISTS "$ENV{DESTDIR}${path}")
      list(APPEND noted "$ENV{DESTDIR}${path}")
    endif()
    get_filename_component(path "${path}" DIRECTORY)
    string(LENGTH "${path}" length)
  endwhile()
endforeach()
list(REMOVE_DUPLICATES noted)
list(SORT noted ORDER DESCENDING)
foreach(path IN LISTS noted)
  file(APPEND "${ISTHMUS_NOTE}" "${path}\n")
endforeach()
