/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a completed program: it has these lines, or parts of lines. */
#ifndef COMPLETED_H
#define COMPLETED_H

#include "trama_complete.h"

void expect_completed(const trama_program *p, int n, const char *const *lines);
#define EXPECT_COMPLETED(p, ...)                                                                                       \
    expect_completed(p, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                                 \
                     (const char *const[]){__VA_ARGS__})

#endif
