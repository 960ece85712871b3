// Laws of communicators over NCCL.
#include "nccl_laws.cpp"
