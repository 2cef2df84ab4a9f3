/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a picture: escaped for XML, and quantities as a person reads them. */
#ifndef SVG_TEXT_H
#define SVG_TEXT_H

#include <stdint.h>
#include <stdio.h>

/* The first so many characters of the text, the last of them ".." where there are more. */
void svg_cut(FILE *out, const char *text, int most);

/* As in printf, a line of at most 1000 bytes; all of it is escaped. */
void svg_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As a compound literal: the text of a call lives as long as the block around it. */
#define DURATION(ms) svg_duration((char[32]){0}, ms)
#define BYTES(n) svg_bytes((char[32]){0}, n)

const char *svg_duration(char text[32], double ms);
const char *svg_bytes(char text[32], int64_t bytes);

#endif
