"""Executors in containers as Kubernetes makes them, without a container runtime: namespaces."""
