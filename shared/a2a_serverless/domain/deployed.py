"""What can be wrong with a deployment, for its operator. Known without the AWS SDK."""


class NotDeployed(Exception):
    """There is no such stack for the AWS credentials and the region at hand."""


class CommandFailed(Exception):
    """A function of the stack did not do what it was told; its log says why."""
