/* SPDX-License-Identifier: Apache-2.0 */
/* Eager mode. */
#include "executable.h"
#include "trama_eager.h"

void eager_free(trama_executable *e)
{
    (void)e;
}
