# SPDX-License-Identifier: Apache-2.0
# Writes C code that has a file's bytes:
#   cmake -DIN=FILE -DOUT=FILE.c -DHEADER=HEADER -DNAME=SYMBOL -P embed.cmake
file(READ ${IN} bytes HEX)
string(LENGTH "${bytes}" n_digits)
math(EXPR n_bytes "${n_digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT} "#include \"${HEADER}\"\n\nconst char ${NAME}[] = {\n${bytes}};\n"
                  "const size_t ${NAME}_bytes = ${n_bytes};\n")
