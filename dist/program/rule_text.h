/* SPDX-License-Identifier: Apache-2.0 */
/* The language of rules: what a rule string and its partial marks say, word by word. Knows no shapes. */
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
    int64_t extent; /* "k=3"; TRAMA_ANY where nothing is said */
    int64_t before, after; /* "i{1:2}" */
    int64_t stride;        /* "i{1:2*3}"; 0 where nothing is said */
    bool wraps;            /* "i{1:2~}" */
} rule_dim_text;

/* Reads the next dim from *at on, which it moves; false at the end. A zeroed *dim before the first. */
bool rule_next_dim(const char **at, const char *end, rule_dim_text *dim);

/* The set of partial values that a word of the marks stands for; false where there is no such word. */
bool rule_mark(const char *word, size_t n, unsigned *set);

/* Whether a string is a rule, and marks are marks, of that many tensors; else says why not. */
bool rule_check(const char *string, int n_in, int n_out, text *why);
bool rule_check_marks(const char *marks, int n_in, text *why);

/* The operands of which neighbours are read: bit i for operand i. */
unsigned rule_reaching(const char *string);

/* Whether all that the rule says is "..." and scalars, so that an op may be called pointwise. */
bool rule_is_pointwise(const char *string);

#endif
