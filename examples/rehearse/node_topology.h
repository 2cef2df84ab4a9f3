/* SPDX-License-Identifier: Apache-2.0 */
/* Cores and GPUs of a node from a file that hwloc writes: lstopo node.xml. */
#ifndef EXAMPLES_NODE_TOPOLOGY_H
#define EXAMPLES_NODE_TOPOLOGY_H

/* The text of a machine in which "cores FILE.xml" and "gpus FILE.xml" have the numbers of that topology; FILE is found
 * from the folder of the machine's file `name`. Each line stays where it is. Ends the program, with name, line and
 * remedy, where such a file cannot be read. The caller frees. */
char *with_topologies(const char *name, const char *text);

#endif
