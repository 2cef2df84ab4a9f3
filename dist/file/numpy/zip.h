/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of the format zip, as NumPy has them: members stored or deflated, also above 4 GiB, in one file without
 * passwords. It knows no arrays. Source: APPNOTE.TXT 6.3.10 of PKWARE. */
#ifndef ZIP_H
#define ZIP_H

#include "base.h"

typedef struct zip_member {
    char *name;
    bool deflated;
    uint32_t sum;          /* CRC-32 of the content */
    int64_t packed, bytes; /* in the archive, and as content */
    int64_t local, entry;  /* the records of the member: before it, and in the directory */
    int64_t at;            /* the first byte of what is packed */
} zip_member;
typedef ARRAY(zip_member) zip_members;

/* Lists the members. No two overlap, and all lie before the directory. A deflated one has at most 1,032 times its
 * packed bytes, the limit of the method. Errors name the file. */
trama_status zip_list(const char *path, int descriptor, int64_t bytes, zip_members *members);
void zip_free(zip_members *members);

/* Inflates a member into the file `to`, until its size, and compares size and sum. most: of the content's bytes; with
 * fewer than the member has, only so many come, without a comparison. */
trama_status zip_unpack(const char *path, int descriptor, const zip_member *m, int64_t most, int to);
/* The sum of bytes of a file; false with errno. */
bool zip_sum(int descriptor, int64_t at, int64_t bytes, uint32_t *sum);

/* Records of an archive that is written: before a stored member, in the directory, and at the end. They have sizes of
 * 64 bits. zip_seal writes the sum into both records of a member that was listed. */
void zip_add_local(text *t, const char *name, int64_t bytes);
void zip_add_entry(text *t, const char *name, int64_t bytes, int64_t local);
void zip_add_end(text *t, int64_t n, int64_t directory, int64_t at); /* directory: its bytes, from byte `at` on */
bool zip_seal(int descriptor, const zip_member *m, uint32_t sum);

#endif
