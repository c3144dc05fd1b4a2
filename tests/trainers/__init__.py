"""Tests of the callbacks for trainers."""
