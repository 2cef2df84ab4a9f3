/* SPDX-License-Identifier: Apache-2.0 */
/* Reads recutils files as StarPU writes them: records of lines "Field: value", an empty line behind each. Knows no
 * field by name. */
#ifndef RECORDS_H
#define RECORDS_H

#include <stdbool.h>

typedef struct records records;

/* NULL, and errno, where the file cannot be opened. */
records *records_open(const char *path);

/* The next record that has a field, false at the end of the file. */
bool records_next(records *r);

/* The value of the record's first field of that name, without blanks around it, or NULL. Valid until the next record.
 */
const char *records_text(const records *r, const char *field);

/* The same as a number; otherwise where there is none. */
double records_number(const records *r, const char *field, double otherwise);
long records_integer(const records *r, const char *field, long otherwise);

/* Nulls the pointer. */
void records_close(records **r);

#endif
