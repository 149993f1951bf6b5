# SPDX-License-Identifier: Apache-2.0
# Makes the manual page of a program from its help, which has a manual's headings.
# usage: cmake -DPROGRAM=PATH -DNAME=voxeld -DOUT=FILE -P manual.cmake
execute_process(COMMAND ${PROGRAM} --help OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\\" "\\e" text "${text}")
string(REPLACE "-" "\\-" text "${text}")
# NAME stands by itself, since mandb reads it.
string(REGEX REPLACE "^NAME\n +([^\n]*)\n" ".SH NAME\n\\1\n" text "${text}")
string(REGEX REPLACE "\n([A-Z][A-Z ]+)\n" "\n.fi\n.SH \\1\n.nf\n" text "${text}")
string(REGEX REPLACE "\n    " "\n" text "${text}")
string(REGEX REPLACE "\n\n+\\.fi" "\n.fi" text "${text}")
string(REGEX REPLACE "^(\\.SH NAME\n[^\n]*)\n+\\.fi" "\\1" text "${text}")
string(TOUPPER ${NAME} title)
file(WRITE ${OUT} "\
.\\\" SPDX-License-Identifier: Apache-2.0
.TH ${title} 8 \"\" \"voxeld\" \"System Administration\"
${text}.fi
")
