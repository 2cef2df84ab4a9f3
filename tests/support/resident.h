/* SPDX-License-Identifier: Apache-2.0 */
/* The most memory that this process had resident. */
#ifndef RESIDENT_H
#define RESIDENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes since the start, or since resident_forget; 0: the system does not say. */
static inline int64_t resident_peak(void)
{
    char line[200];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return (int64_t)kib << 10;
}

/* Begins the peak anew; false where the system does not let it. */
static inline bool resident_forget(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    return f && fputs("5", f) >= 0 && !fclose(f);
}

#endif
