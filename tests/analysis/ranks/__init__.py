"""Many ranks side by side."""
