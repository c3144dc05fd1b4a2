"""What a process of our own needs: signals, standard streams, files, threads, children."""
