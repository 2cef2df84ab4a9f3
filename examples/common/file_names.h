/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files out of names of values. */
#ifndef EXAMPLES_FILE_NAMES_H
#define EXAMPLES_FILE_NAMES_H

/* FOLDER/NAME and the ending, where _ stands for letters that names of files may lack. The caller frees. */
char *file_of_name(const char *folder, const char *name, const char *ending);

#endif
