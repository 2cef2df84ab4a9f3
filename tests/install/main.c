/* SPDX-License-Identifier: Apache-2.0 */
/* A program outside the tree, built against an installed Trama. */
#include <stdio.h>
#include <trama.h>

int main(void)
{
    printf("%s\n", trama_version());
    return 0;
}
