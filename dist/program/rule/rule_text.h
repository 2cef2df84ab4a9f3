/* SPDX-License-Identifier: Apache-2.0 */
/* The language of rules: words of a rule string and of its partial marks. It knows no shapes. */
#ifndef RULE_TEXT_H
#define RULE_TEXT_H

#include "base.h"

/* Length of the part that describes one tensor: up to the next ",", "->" or the end. */
size_t rule_part(const char *string);

bool rule_has_dots(const char *part, size_t n);

/* One dim of a part, in order. */
typedef struct rule_dim_text {
    char letter;
    bool whole;     /* in brackets */
    int64_t extent; /* "k=3"; TRAMA_ANY without an extent */
    int64_t before, after; /* "i{1:2}" */
    int64_t stride;        /* "i{1:2*3}"; 0 without a stride */
    bool wraps;            /* "i{1:2~}" */
} rule_dim_text;

/* Reads the next dim at *at and moves *at past it; false at the end. *dim must be zeroed before the first. */
bool rule_next_dim(const char **at, const char *end, rule_dim_text *dim);

/* Sets the partial values of a word of the marks; false for an unknown word. */
bool rule_mark(const char *word, size_t n, unsigned *set);

/* Whether a string is a rule, and marks are valid, for that many tensors; if not, adds the reason. */
bool rule_check(const char *string, int n_in, int n_out, text *why);
bool rule_check_marks(const char *marks, int n_in, text *why);

/* Bit i: neighbours of operand i are read. */
unsigned rule_reaching(const char *string);

/* Whether the rule has only "..." and scalars, as a pointwise op must. */
bool rule_is_pointwise(const char *string);

#endif
