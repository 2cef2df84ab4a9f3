/* SPDX-License-Identifier: Apache-2.0 */
/* A session of eager mode, and the key that decides when two ops are alike. The form of a value is all that a plan sees
 * of it: type, shape, layout, and how this rank's local boxes lie in shards. */
#ifndef EAGER_H
#define EAGER_H

#include "executable.h"

enum {
    MAX_OUTSTANDING = 64 /* ops under way; with SYNC_CALLS it keeps tags apart (message.h) */
};

/* All that decides a compiled program. Compared as bytes: zeroed before it is filled. */
typedef struct eager_key {
    const trama_op *op; /* NULL: a constant from the host; with an operand, a copy of it */
    trama_attributes attributes;
    int64_t in[TRAMA_MAX_OPERANDS]; /* 1 + forms of the operands; 0: none */
    int64_t fixed;                  /* 1 + the number of the words of the op's own layouts; 0 without */
    const trama_mesh *mesh;         /* of a leaf, or asked for by a reshard */
    int64_t axes[TRAMA_MAX_AXES][4];
    const unsigned char *mask;
    int64_t dtype, ndim, dim[TRAMA_MAX_NDIM];
} eager_key;

typedef struct outstanding {
    instance *in;
    fence *f;
} outstanding;

typedef struct eager_session {
    program_session base; /* first: the program points to it */
    trama_executable *e;
    ARRAY(char *) forms; /* in words; a form's number is its place here */
    int64_t ops;
    outstanding queue[MAX_OUTSTANDING]; /* a ring */
    int first, n;
    ARRAY(trama_value *) kept;
} eager_session;

/* The session that a program has; NULL. */
static inline eager_session *session_of(const trama_program *program)
{
    return (eager_session *)program->session;
}

/* The plan for a key in the executable's cache, or NULL; and keeping one there. Each op makes an instance of it. */
kept_plan *eager_find(trama_executable *e, const eager_key *key);
kept_plan *eager_keep(trama_executable *e, const eager_key *key, compiled_program *made);
void eager_forms_free(eager_session *s);

/* The number of some words, which are owned from there on: equal ones have the same. */
int eager_number(eager_session *s, char *words);

/* The form of a value that a compiled program made. */
static inline int eager_form(value_ref at)
{
    return at.in->of->forms[at.as];
}

#endif
