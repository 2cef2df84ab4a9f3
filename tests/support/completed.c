/* SPDX-License-Identifier: Apache-2.0 */
/* Completed programs as text. */
#include "completed.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

void expect_completed(const trama_program *p, int n, const char *const *lines)
{
    char *words = NULL;
    ck_assert_msg(!trama_complete_text(p, 64, &words), "%s", trama_error());
    for (int i = 0; i < n; i++)
        ck_assert_msg(strstr(words, lines[i]) != NULL, "no '%s' in\n%s", lines[i], words);
    free(words);
}
