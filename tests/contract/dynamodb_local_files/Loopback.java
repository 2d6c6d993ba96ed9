import com.amazonaws.services.dynamodbv2.local.main.ServerRunner;
import com.amazonaws.services.dynamodbv2.local.server.DynamoDBProxyServer;
import java.util.Arrays;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/** DynamoDB Local with its own command line, listening on 127.0.0.1 only: by itself it listens on every address. */
class Loopback {
    public static void main(String[] arguments) throws Exception {
        DynamoDBProxyServer local = ServerRunner.createServerFromCommandLineArgs(arguments);
        var field = DynamoDBProxyServer.class.getDeclaredField("server");
        field.setAccessible(true);
        var connectors = ((Server) field.get(local)).getConnectors();
        Arrays.stream(connectors).forEach(connector -> ((ServerConnector) connector).setHost("127.0.0.1"));
        local.start();
        local.join();
    }
}
