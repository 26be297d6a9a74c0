# SPDX-License-Identifier: Apache-2.0
# Shows plain comments of a header to doxygen as its own; # is no link there.
s|^( *)// |\1/// |
s|([;,{0-9]) +// |\1 ///< |
/\/\/\//s|#|\\#|g
